from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0041_program_series")]

    operations = [
        migrations.AlterField(
            model_name="gatewaysession",
            name="kind",
            field=models.CharField(
                choices=[("attach", "Program"), ("ssh", "Shell"), ("sync", "Code")],
                db_default="attach",
                default="attach",
                max_length=8,
            ),
        ),
    ]
