from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0027_project_lifecycle")]

    operations = [
        migrations.AddField(
            model_name="installation",
            name="release",
            field=models.CharField(blank=True, default="", max_length=40),
        ),
    ]
