from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0032_plain_choice_labels")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="laptops_may_attach",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
