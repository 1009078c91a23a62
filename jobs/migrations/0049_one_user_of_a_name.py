from django.db import migrations, models
from django.db.models import Count
from django.db.models.functions import Upper


def refuse_names_that_differ_by_case(apps, schema_editor):
    """Stop with the names to change, while nothing has been changed."""
    users = apps.get_model("jobs", "User").objects.annotate(key=Upper("username"))
    twice = users.values("key").annotate(count=Count("pk")).filter(count__gt=1).values("key")
    names = list(users.filter(key__in=twice).order_by("key", "pk").values_list("username", flat=True))
    if names:
        raise RuntimeError(
            f"Users whose names differ by case alone: {', '.join(names)}. Rename all but one of "
            "each with the earlier release (manage.py shell), then start this release again."
        )


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0048_attempt_by_end'),
    ]

    operations = [
        migrations.RunPython(refuse_names_that_differ_by_case, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.UniqueConstraint(Upper('username'), name='one_user_of_a_name'),
        ),
    ]
